"""The command `backtest`: history or trace -> calibrate job -> closed loop of each policy -> report."""
