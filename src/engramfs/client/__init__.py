"""Programs that use engramfs: typed, synchronous, with a daemon or without one.

    with engramfs.Client() as client:
        session = client.open_session(agent="digest", actor="alice")
        session.edit("memories/alice", [Create("notes.md", "…")], message="first notes")

state      the log of a state directory: behind a running daemon, or alone under the store lock
answers    what is answered, as frozen structs
session    what one session sees, and writes
searching  what is found: in stores, or in what a session shows
 └ drafts  what a session sees and no head has
connection where it is, and a transaction to read
versions   the log: what changed, undoing, deciding on what waits (in the name of: person)
client     all of it

Reading goes straight to the log, after a running daemon has sealed what is open; writing goes through the
daemon when one runs. Imports neither trio nor pyfuse3.
"""

from engramfs.client.answers import Attachment, File, FileContent, SearchAnswer, StoreInfo
from engramfs.client.client import Client
from engramfs.client.session import Session

__all__ = ["Attachment", "Client", "File", "FileContent", "SearchAnswer", "Session", "StoreInfo"]
