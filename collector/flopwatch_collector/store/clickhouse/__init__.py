"""The store on a ClickHouse server or cluster, over plain HTTP."""
