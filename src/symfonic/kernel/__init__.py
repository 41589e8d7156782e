"""The kernel: runs turns, and never knows who contributed what."""
