"""Nothing of torch is needed here: programs run in processes of their own."""
