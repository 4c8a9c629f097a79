-- KEYS entries; ARGV schema. Returns {now in µs, entry}.
local t = redis.call('TIME')
return {string.format('%.0f', t[1] * 1000000 + t[2]), redis.call('HGET', KEYS[1], ARGV[1])}
