"""A server of the Model Context Protocol over a session. Needs the extra `engramfs[mcp]`.

server      the protocol's requests, answered by `engramfs.tools`
resources   each file of the session's stores as a resource
following   which resources changed, by the feed of versions
unreadable  an answer to what is no message to the SDK
serving     one server over standard input and output, with a session of its own or one that is there
"""
