"""A kit of real jobs for one GPU: training, inference and data preparation, sized by seconds.

`python -m yardmaster.live.kit KIND --runtime S` works for S seconds from the moment it is ready;
loading libraries and the GPU's context comes on top, as in any real job. On a machine without a GPU
the same jobs run on the CPU with small models. This is the only place outside `agents` that imports
torch, and only when a job runs.
"""
