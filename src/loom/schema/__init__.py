"""The tables every engine has, as numbered scripts in the common dialect. Forward only."""
