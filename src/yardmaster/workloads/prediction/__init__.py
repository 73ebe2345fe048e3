"""How long will a job run? Predictions made at its submission from jobs that had ended by then."""
