"""`casstat top`: a cluster on one screen. What is shown is made by pure functions; `app` alone knows a terminal."""
