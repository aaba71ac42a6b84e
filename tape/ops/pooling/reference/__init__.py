"""What pools and upsampling give, to the last bit: written slowly and plainly, apart from the kernels."""
