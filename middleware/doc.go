// Package middleware puts a cache in front of HTTP handlers.
package middleware
