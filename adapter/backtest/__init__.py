"""The command `backtest`: history or trace -> calibrated job -> closed loop of each policy -> report."""
