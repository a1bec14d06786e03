"""Published accelerators as the cost model sees them, shared by the tests of this folder.

Only H100 and B200 were looked at while the price ranges were chosen; H200 and MI300X were not.
"""

from dataclasses import replace

from codesign.prices import CostChoice, NetworkChoice

# Die areas: 814 mm2 is NVIDIA's for H100; 800 mm2 stands for the unpublished near-reticle die of B200.
H100 = CostChoice(
    node="n4",
    package="cowos_s",
    memory="hbm3",
    compute_count=1.0,
    compute_area_mm2=814.0,
    stacks_count=5.0,
    stack_gb=16.0,
    carrier_mm2=1.1 * (814.0 + 6 * 121.0),  # the sixth site holds a blank
    busy_w=10_200 / 8,
    idle_w=300.0,
    peak_w=10_200 / 8,
    compute_serdes_mm2=17.4,
    compute_buffer_mm2=3.0,
    host="hgx_8",
    cooling="air",
    second_tier_gb=256.0,
    scale_up=NetworkChoice(switch="nvlink", switches_count=0.5, switch_gbps=7200.0),
    scale_out=NetworkChoice(
        switch="infiniband_400g",
        nic="connectx_7",
        medium="pluggable_optics_400g",
        switches_count=3 / 64,
        switch_gbps=25_600.0,
        nics_count=1.0,
        nic_gbps=400.0,
        cables_count=2.0,
        link_gbps=400.0,
        length_m=20.0,
        transceivers_count=4.0,
    ),
)
B200 = CostChoice(
    node="n4",
    package="cowos_l",
    memory="hbm3e",
    compute_count=2.0,
    compute_area_mm2=800.0,
    stacks_count=8.0,
    stack_gb=24.0,
    busy_w=14_300 / 8,
    idle_w=400.0,
    peak_w=14_300 / 8,
    host="hgx_8",
    cooling="air",
)

H200 = replace(H100, memory="hbm3e", stacks_count=6.0, stack_gb=23.5)
# Chiplet areas of MI300X are reported, not printed by AMD: eight compute dies on four I/O dies.
MI300X = CostChoice(
    node="n5",
    package="cowos_s",
    memory="hbm3",
    compute_count=8.0,
    compute_area_mm2=115.0,
    critical_frac=0.3,
    spare_cores_count=2.0,
    io_node="n6",
    io_count=4.0,
    io_area_mm2=370.0,
    carrier_mm2=1.1 * (4 * 370.0 + 8 * 121.0),  # compute dies stand on I/O dies
    stacks_count=8.0,
    stack_gb=24.0,
    busy_w=750.0,
    idle_w=150.0,
    peak_w=750.0,
)
