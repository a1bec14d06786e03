"""What one accelerator spends on one operation: matrix products, attention, experts, element-wise traffic."""
