"""A browser of the dashboard without a server: one request to its WSGI application."""

import io
from typing import Any


def get(app: Any, path: str, method: str = "GET") -> tuple[str, bytes]:
    """Status and body of the answer; what stands behind a question mark is the query."""
    said: list[str] = []
    path, _, query = path.partition("?")
    environ = {
        "REQUEST_METHOD": method,
        "PATH_INFO": path,
        "QUERY_STRING": query,
        "wsgi.input": io.BytesIO(),
        "wsgi.errors": io.StringIO(),
        "SERVER_NAME": "x",
        "SERVER_PORT": "80",
        "wsgi.url_scheme": "http",
    }
    body = b"".join(app(environ, lambda status, *_: said.append(status)))
    return said[0], body
