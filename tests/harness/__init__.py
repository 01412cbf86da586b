"""What the runners of many-process tests share: the table, the job, its investigation."""
