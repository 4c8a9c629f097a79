-- KEYS lock, mark; ARGV token, ttl in ms. Returns 1 granted, 0 taken back meanwhile, or
-- 2 + the time in ms for which another has it, if not extended.
local holder = redis.pcall('GET', KEYS[1])
if holder == ARGV[1] then -- our own earlier try, whose reply was lost
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
  return 1
end
-- A lease always has a TTL: whatever stands there without one (-1), or is no string, is not a lease.
if type(holder) == 'string' then
  local left = redis.call('PTTL', KEYS[1])
  if left ~= -1 then return 2 + math.max(left, 0) end
end
if type(holder) == 'table' and not string.find(holder.err, 'WRONGTYPE', 1, true) then return holder end -- no answer is no right
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
