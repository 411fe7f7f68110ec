"""Where commands run: a checkout for each attempt, its environment, its interpreter."""
