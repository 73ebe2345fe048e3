"""An existing Ray cluster: we hold the queue, and reserve GPUs only for what is to start now."""
