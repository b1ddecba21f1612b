# SPDX-License-Identifier: MIT
# Each frame ends with a sleep of 7 us, by which src/sleep_frames.c counts frames; two frames are slow.
extends SceneTree

var frame = 0

func work(rounds):
	var sum = 0
	for i in range(rounds):
		sum += i * i % 7
	return sum

func _idle(_delta):
	frame += 1
	work(2000)
	if frame == 40 or frame == 70:
		work(600000)
		print("planted at ", frame)
	OS.delay_usec(7)
	if frame == 100:
		quit()
