"""The kernels of pools and upsampling."""
