"""Rules on the schedules of fused ops, each as the ops use it that run it."""
