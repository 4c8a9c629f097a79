-- KEYS entries, fences; ARGV schema, seen, hold in ms.
-- Returns {fence, now in µs, entry if newer than seen}, or {'0', now, error} after a failure, while nobody is to try again.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local kind, left = redis.call('TYPE', KEYS[2]).ok, redis.call('PTTL', KEYS[2])
local function number(field) return kind == 'hash' and tonumber(redis.call('HGET', KEYS[2], field) or '') end
local last, bar, own = number('last'), number('bar'), number('of:' .. ARGV[1]) or 0
-- Numbers that can't be are not ours and would bar the name for ever: decades ahead, or higher than the last, or a
-- failure that outlasts the memory of it. (NaN is none of what is asked here.)
local until_ = number('until:' .. ARGV[1])
if until_ and now < until_ and until_ <= now + (left + 1) * 1000 then
  return {'0', string.format('%.0f', now), redis.call('HGET', KEYS[2], 'error:' .. ARGV[1])}
end
local n = now
if last and bar and last < now + 1e15 and bar <= last and own <= last then
  if last >= n then n = last + 1 end
  redis.call('HSET', KEYS[2], 'last', string.format('%.0f', n))
else -- nothing is known of the name (any more): refuse whatever began before
  if kind ~= 'none' then redis.call('DEL', KEYS[2]) end
  redis.call('HSET', KEYS[2], 'last', string.format('%.0f', n), 'bar', string.format('%.0f', n - 1))
end
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
local entry = redis.pcall('HGET', KEYS[1], ARGV[1])
if type(entry) ~= 'string' or (tonumber(string.sub(entry, 1, 16)) or 0) <= tonumber(ARGV[2]) then entry = false end
return {string.format('%.0f', n), string.format('%.0f', now), entry}
