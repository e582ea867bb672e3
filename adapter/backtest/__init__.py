"""Jobs and autoscalers as arithmetic: the embedded fleet today, the replay of a history on the same model."""
