-- KEYS lock, marker; ARGV token, number. Returns 1 the next number here is higher, 0 the lease is no longer ours.
local found = redis.call('MGET', KEYS[1], KEYS[2]) -- what is no string is as nothing
if found[1] ~= ARGV[1] then return 0 end
local since, last, forgot = string.match(found[2] or '', '^(%w* %d+ )(%d+)(%??)$')
if not since then return 0 end
last = tonumber(last)
if last > 9007199254740990 then last = 0 end
if forgot ~= '' or last < tonumber(ARGV[2]) then
  redis.call('SET', KEYS[2], since .. string.format('%.0f', math.max(last, ARGV[2]))) -- a mere concatenation would round it
end
return 1
