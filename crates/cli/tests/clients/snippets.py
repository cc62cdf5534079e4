"""The configurations that the documentation gives for clients, as they are written there."""

import pathlib
import re

import lab

PAGE = pathlib.Path(__file__).parents[4] / "docs/mcp.md"

# The directory that the page uses, for which a project of the lab stands in.
DIRECTORY = "/home/user/api"


def snippet(client, root):
    """Returns the block that follows the line of a client, for a project of the lab."""
    block = re.search(rf"^{re.escape(client)}\b[^\n]*:\n\n```\w+\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    lab.expect(block is not None, f"{PAGE} has no configuration for {client}")
    lab.expect(DIRECTORY in block[1], f"the configuration for {client} does not name {DIRECTORY}")
    return block[1].replace(DIRECTORY, str(root))
