-- KEYS lock; ARGV token, ttl in ms, channel ('' for none), message. Returns 1 extended, 0 no longer ours.
if redis.call('MGET', KEYS[1])[1] ~= ARGV[1] then return 0 end -- what is no string is as nothing
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if ARGV[3] ~= '' then redis.pcall('PUBLISH', ARGV[3], ARGV[4]) end -- without the right to publish, it is extended all the same
return 1
