"""A fluid model of streaming jobs, their disturbances, the arithmetic of the HPA, and baseline autoscalers."""
