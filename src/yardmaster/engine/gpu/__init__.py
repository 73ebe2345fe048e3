"""The same core on an NVIDIA GPU: thousands of environments, one per thread."""
