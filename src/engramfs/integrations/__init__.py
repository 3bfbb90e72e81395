"""engramfs as a part of other libraries. Each module needs the extra of its name.

anthropic    the memory tool of the Anthropic SDK, sync and async
deepagents   a backend for deepagents
mcp          a server of the Model Context Protocol
"""
