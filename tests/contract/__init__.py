"""The store's executable specification: every store must pass every test here.

Each test reads given / when / then, one paragraph each. It speaks through ``words`` and the contract
alone; nothing here knows how a store keeps what it keeps.
"""
