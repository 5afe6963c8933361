"""The command `casstat capacity`: steps at increasing rates, each a run, until the highest rate is found."""
