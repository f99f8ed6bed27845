"""What a run found, and what it shows: numbers, judgement of the policy, tables and charts."""
