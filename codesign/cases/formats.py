"""Number formats as case files write them, in the words the machines use."""

import re

#: pattern in a lower-case cell -> word of `codesign.machines`; the first that matches wins
_PATTERNS: tuple[tuple[str, str], ...] = (
    (r"w4a8|w4afp8", "w4a8"),
    (r"w4a16|int4|awq|gptq", "int4"),
    (r"int8_wo|w8a16", "int8_wo"),
    (r"^sq$|w8a8_int|int8", "int8"),
    (r"nvfp4|^fp4|^e2m1", "nvfp4"),
    (r"mxfp4", "mxfp4"),
    (r"mxfp8", "mxfp8"),
    (r"(fp8|float8|e4m3).*(block|1x128)", "fp8_block"),
    (r"fp8|float8|e4m3|e5m2", "fp8"),
    (r"bf16|bfloat16", "bf16"),
    (r"fp16|float16|half", "fp16"),
)


def format_word(cell: str) -> str | None:
    """The word of a number format, or None when no model knows it.

    >>> format_word("bfloat16"), format_word("fp8 (1x128 / 128x128 block scaled)"), format_word("fp64")
    ('bf16', 'fp8_block', None)
    """
    text = cell.strip().lower()
    return next((word for pattern, word in _PATTERNS if re.search(pattern, text)), None)
