-- KEYS lock, fence; ARGV token, number, ttl of the fence in ms. Returns 1 the next number here is higher, 0 no longer ours.
if redis.pcall('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local fence = redis.pcall('GET', KEYS[2])
fence = type(fence) == 'string' and string.match(fence, '^%d+$') and tonumber(fence) or 0
if fence < tonumber(ARGV[2]) or fence > 9007199254740990 then redis.call('SET', KEYS[2], ARGV[2], 'PX', ARGV[3]) end
return 1
