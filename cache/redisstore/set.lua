-- KEYS entries, fences; ARGV schema, fence, ttl in ms, envelope ('' to remove), sole (1 or 0), channel, head of the message,
-- longest entry that goes along with it. Returns {1 written or 0 refused, now in µs}.
local t = redis.call('TIME')
local now = t[1] * 1000000 + t[2]
local fence = tonumber(ARGV[2])
local refused = {0, string.format('%.0f', now)}
local known = redis.call('TYPE', KEYS[2]).ok == 'hash'
local last = known and tonumber(redis.call('HGET', KEYS[2], 'last') or '')
local bar = known and tonumber(redis.call('HGET', KEYS[2], 'bar') or '')
-- Without memory of the name a deletion may have been forgotten. (Asked in the positive: NaN is no memory.)
if not (last and bar and last >= fence and bar <= fence) then return refused end
if not ((tonumber(redis.call('HGET', KEYS[2], 'of:' .. ARGV[1]) or '') or 0) <= fence) then return refused end

local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and (ARGV[5] == '1' or kind ~= 'hash') then redis.call('DEL', KEYS[1]) end
local entry = ''
if ARGV[4] == '' then
  redis.call('HDEL', KEYS[1], ARGV[1])
else
  -- The stamp: fence, time of publication, and eight digits that no other stamp has.
  local stamp = string.format('%016.0f%016.0f', fence, now)
  entry = stamp .. string.sub(redis.sha1hex(stamp), 1, 8) .. ARGV[4]
  redis.call('HSET', KEYS[1], ARGV[1], entry)
  -- Other schemas' entries keep their time; alone, this one decides.
  if redis.call('HLEN', KEYS[1]) == 1 or redis.call('PTTL', KEYS[1]) < tonumber(ARGV[3]) then
    redis.call('PEXPIRE', KEYS[1], ARGV[3])
  end
end
redis.pcall('HSET', KEYS[2], 'of:' .. ARGV[1], ARGV[2])
redis.call('HDEL', KEYS[2], 'until:' .. ARGV[1], 'error:' .. ARGV[1])
if ARGV[5] == '1' then redis.pcall('HSET', KEYS[2], 'bar', ARGV[2]) end
if #entry > tonumber(ARGV[8]) then entry = string.sub(entry, 1, 40) end -- the stamp alone
redis.pcall('PUBLISH', ARGV[6], ARGV[7] .. entry)
return {1, string.format('%.0f', now)}
