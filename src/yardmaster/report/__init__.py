"""How results are shown: tables, figures and the self-contained HTML report."""
