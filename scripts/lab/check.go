package main

import "context"

func (l *lab) check(ctx context.Context) error { return nil }
