"""How large a step is: schedules of learning rates, by kernels and by ops."""
