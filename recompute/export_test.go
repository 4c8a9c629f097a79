package recompute

// Size returns how many keys Local keeps something of.
func (l *Local) Size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}
