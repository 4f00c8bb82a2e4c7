"""`biella demo`: one rig, from its bodies to a paced run and a page of pictures."""
