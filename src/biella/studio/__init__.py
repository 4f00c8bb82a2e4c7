"""The studio: a page in the browser that shows a run and controls it, and its server.

`_command` is the command line, `_server` talks to pages, `_session` holds the diagram and its run,
`_result` a recorded one, `_attached` a run of another process. `_messages`, `_mechanism` and
`_scopes` turn what they have into messages. ``page/`` is the source of the page.
"""
