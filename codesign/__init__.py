"""codesign: from SerDes, protocol, buffers and memory to the cost of a token."""

__version__ = "0.1.0"
