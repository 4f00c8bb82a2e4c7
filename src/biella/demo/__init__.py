"""`biella demo`: one rig, from its bodies to a real-time run and a page of pictures."""
