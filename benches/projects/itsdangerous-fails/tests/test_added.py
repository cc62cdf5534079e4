from pathlib import Path


def test_that_writes_a_file():
    Path("written.txt").write_text("by a test\n")


def test_that_fails():
    assert sorted("ba") == ["b", "a"]
