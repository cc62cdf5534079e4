import os


def test_that_ends_the_process():
    os._exit(0)
