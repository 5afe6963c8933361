"""Many nodes as they are now: samples from agents or Jolokias, put together tick by tick."""
