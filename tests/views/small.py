"""A design small enough for every view."""

DESIGN = """
name: small
question: What does a Llama-3.1-8B chat cost on eight of these?
base: hgx_h100
workloads:
  chat: {kind: serving, model: Llama-3.1-8B, accelerators_count: 8, input_count: 1024, output_count: 256,
         tpot_ms: 15.0, ttft_ms: 500.0, precision: fp8}
fix: {memory_stacks_count: 6}
"""
