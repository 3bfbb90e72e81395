"""Who runs this program, as the author of a version."""

import os
import pwd

from engramfs.model.author import Author


def person() -> Author:
    """By the name of the user, or the number where it has none."""
    uid = os.getuid()
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = str(uid)
    return Author("person", actor=name)
