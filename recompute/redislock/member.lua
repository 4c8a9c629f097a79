-- Before a script of a quorum. The last KEYS marker, the last ARGV how long a server that has lost its memory has no vote, in ms.
-- Returns {0, for how long it has been there, in ms, the marker} if it has none; else what follows has its turn.
do
  local time = redis.call('TIME')
  local now = time[1] * 1000 + math.floor(time[2] / 1000)
  local info = redis.pcall('INFO', 'server')
  local run = type(info) == 'string' and string.match(info, 'run_id:(%w+)') or '' -- unknown to who may not ask
  local marker = redis.call('GET', KEYS[#KEYS])
  local known, since = string.match(marker or '', '^(%w*) (%d+)$')
  since = tonumber(since)
  local another = known ~= run and known ~= '' and run ~= ''
  if not known or another or since > now then -- it is new, empty, restarted, or its clock was set back
    since = now
    marker = run .. ' ' .. string.format('%.0f', since)
    redis.call('SET', KEYS[#KEYS], marker)
  end
  if now - since < tonumber(ARGV[#ARGV]) then return {0, now - since, marker} end
end
