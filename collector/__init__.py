"""What is measured: vocabulary, sources, rates, histograms. Knows no terminal, no sink and no setting."""
