"""The kernels that take and add what indices name."""
